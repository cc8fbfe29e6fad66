"""What the server accepts. A test compares every entry with the server's own declaration.

What exceeds a limit is refused or cut before it is logged: a refusal after hours of training helps nobody.
"""

from __future__ import annotations

MAX_NAME = 200
MAX_GROUP = 200
MAX_PROJECT = 64
MAX_ALGORITHM = 50
MAX_ENVIRONMENT = 200
MAX_NOTES = 20_000
MAX_TAG = 50
MAX_TAGS = 50
MAX_SEED = 2**63 - 1

MAX_CONFIG_FIELDS = 500
MAX_CONFIG_BYTES = 16_384
MAX_DETAILS_BYTES = 32_768
MAX_SETTING_CHARACTERS = 100
MAX_CONFIG_TEXT = 1_000
MAX_CONFIG_LIST = 100

MAX_METRIC_CHARACTERS = 200
MAX_STEPS = 10**15
MAX_MESSAGE_CHARACTERS = 10_000
MAX_ALERT_TITLE = 255
MAX_ALERT_TEXT = 4_096
MAX_REASON_CHARACTERS = 2_000
"""Characters of the reason of a state."""
LEVELS = ("debug", "info", "warning", "error")

MAX_POINTS = 10_000
"""Points of a request."""
MAX_EPISODES = 5_000
"""Episodes of a request, each of which is two points."""
MAX_LINES = 1_000
"""Log lines of a request."""

MAX_HISTOGRAMS = 100
"""Histograms of a request."""
MAX_BINS = 64
"""Bins of a histogram."""
MAX_MEDIA_BYTES = 2 * 2**20
"""Size of an image or a table."""
MAX_IMAGE_PIXELS = 4_096
"""Pixels of a side of an image."""
MAX_TABLE_ROWS = 1_000
MAX_TABLE_COLUMNS = 50
MAX_CELL = 1_000
MAX_COLUMN = 200
"""Characters of a column's name."""
MAX_CAPTION = 500

MAX_ARGUMENTS = 500
MAX_ARGUMENT_CHARACTERS = 2_000
MAX_PACKAGES = 2_000
MAX_DIFF_BYTES = 256 * 2**10
MAX_OUTPUT_CHARACTERS = 64 * 2**10
"""How much of what a script has printed last is kept."""

MAX_FILE_BYTES = 2**30
MAX_VIDEO_BYTES = 256 * 2**20
MAX_FPS = 240.0
SIDE_PIXELS = (16, 4_096)
"""The least and the most pixels of a side of a frame."""
MAX_FRAMES = 20_000
"""Frames of a video."""
