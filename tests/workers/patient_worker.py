"""`callboard worker`, whose engines may take long to stop, as they do on a slow machine."""

from callboard_cli.main import app
from tests.support.waiting import PATIENCE_S
from workers import celery_app, supervisor

if __name__ == "__main__":
    supervisor.SHUTDOWN_STOP_TIMEOUT_S = PATIENCE_S
    celery_app.STOP_TIMEOUT_S = PATIENCE_S
    app(["worker"])
