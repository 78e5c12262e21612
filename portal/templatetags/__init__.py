"""Template tags that are about neither tenants nor jobs."""
