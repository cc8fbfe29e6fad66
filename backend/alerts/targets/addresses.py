"""Addresses of targets, as Apprise reads them: which are allowed, and how one is used.

A worker sends to what an admin has entered. So few kinds of services are allowed, certificates are checked as
Apprise does, no redirect is followed, and no answer is awaited for longer than `TIMEOUT_S`.
"""

import logging
from typing import TYPE_CHECKING, Any, cast

from backend.alerts.targets.schemas import TargetKind
from backend.platform.settings import is_loopback

if TYPE_CHECKING:
    from apprise import NotifyBase

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 10.0

KINDS: dict[str, TargetKind] = {
    "NotifyJSON": "json",
    "NotifyEmail": "mail",
    "NotifySlack": "slack",
    "NotifyDiscord": "discord",
}
"""Class of Apprise -> what it is here."""


class BadAddress(ValueError):
    """Not an address of an allowed service; the message has no part of the address."""


def opened(url: str) -> tuple[TargetKind, "NotifyBase"]:
    """The kind of an address, and what sends to it.

    Raises:
        BadAddress: it is of no allowed service.
    """
    from apprise import Apprise, AppriseAsset, PersistentStoreMode  # takes half a second

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # it logs addresses
    asset = AppriseAsset(app_id="Callboard", http_redirects=False, storage_mode=PersistentStoreMode.MEMORY)
    service = Apprise.instantiate(url, asset=asset)
    if service is None and url.startswith("https://"):
        service = Apprise.instantiate(f"jsons://{url.removeprefix('https://')}", asset=asset)
    kind = KINDS.get(type(service).__name__)
    if kind is None:
        raise BadAddress(
            "must be an https:// address, a webhook of Slack or Discord, or an address of Apprise that "
            "begins with jsons://, mailtos://, slack:// or discord://"
        )
    sender = cast(Any, service)
    if kind == "json" and not sender.secure and not is_loopback(sender.host):
        raise BadAddress("must begin with https://: without TLS, json:// is for a worker's own machine only")
    # An address may name others.
    sender.redirects, sender.retry = False, 0
    sender.socket_connect_timeout, sender.socket_read_timeout = CONNECT_TIMEOUT_S, TIMEOUT_S
    return kind, sender


def masked(sender: "NotifyBase") -> str:
    """An address without secrets: service and host. A path may be one."""
    schema, _, rest = cast(Any, sender).url(privacy=True).partition("://")
    place = rest.partition("?")[0].partition("/")[0].rpartition("@")[2]
    return f"{schema}://{place}/****"
