"""What a server may ask: names of words, a client's choice among them, and the channel to a tally.

Names are imported when they are first used: some load compiled code, which servers that only ask
do not need.
"""

from fedhh.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
