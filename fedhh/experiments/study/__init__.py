"""What all kinds of experiments share: files, tables, figures' looks, pages, and the kinds."""
