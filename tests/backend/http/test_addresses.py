import pytest

from backend.http.addresses import network_of


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::9:9:9:9", "2001:db8::/64"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        ("127.0.0.1", "loopback"),
        ("127.9.8.7", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.2", "loopback"),
        ("", ""),
    ],
)
def test_addresses_that_one_host_may_choose_count_together(host: str, network: str) -> None:
    assert network_of(host) == network
