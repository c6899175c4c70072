"""Scripts that run in the environments of other packages; they do not import fedhh."""
