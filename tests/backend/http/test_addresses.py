import pytest

from backend.http.addresses import network_of


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::9:9:9:9", "2001:db8::/64"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        ("", ""),
    ],
)
def test_hosts_of_one_ipv6_network_count_together(host: str, network: str) -> None:
    assert network_of(host) == network
