"""Addresses of clients.

The audit trail, limits of logins and the size of bodies depend on it, and it depends on none of them.
"""

import ipaddress

from starlette.requests import HTTPConnection

MAX_ADDRESS = 64
"""Longer than any address."""


def address_of(connection: HTTPConnection) -> str:
    """The client's address, as far as it is known."""
    return connection.client.host[:MAX_ADDRESS] if connection.client else ""


def network_of(host: str) -> str:
    """The address that limits count for: of IPv6 the network, in which a host chooses its addresses, and of
    this machine one, since each of its processes may use them all."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6:
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return "loopback"
    return str(address if address.version == 4 else ipaddress.ip_network((address, 64), strict=False))
