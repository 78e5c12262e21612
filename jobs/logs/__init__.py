"""From a container's output to the browser.

lines.py → collector.py → archive.py → views.py, with streams.py for one row per run of a container and tails.py for
pages without JavaScript.

Confusions: a *stream* is one run of one container; a restart is another stream. A *chunk* is how lines are stored.
"""
