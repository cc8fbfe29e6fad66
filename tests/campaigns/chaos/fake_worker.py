"""The real worker with the fake engine."""

from backend.platform import logging
from backend.platform.settings import Settings
from tests.workers.support import FAKE_ENGINE
from workers import celery_app

if __name__ == "__main__":
    settings = Settings()
    logging.configure(settings)
    celery_app.run(settings, command=FAKE_ENGINE)
