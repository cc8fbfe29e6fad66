"""Timers of pages that a test does not want to race against."""

from playwright.sync_api import Page


def stop_timers(page: Page, ms: int) -> None:
    """Keep timers of that duration, of pages that are opened from now on, from ending within the test.

    On a busy machine they would end before the test has come to what they limit.
    """
    page.add_init_script(
        f"""{{
          const timer = window.setTimeout;
          window.setTimeout = (run, ms, ...more) => timer(run, ms === {ms} ? 1e9 : ms, ...more);
        }}"""
    )
