"""Copies third-party browser assets into `static/vendor/`; run by a developer, never at start-up."""
