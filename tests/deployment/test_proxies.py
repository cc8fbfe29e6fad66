"""The examples for nginx and Caddy: pages, API, streams and large bodies below a path of the real proxy."""

import datetime
import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from websockets.sync.client import connect
from websockets.typing import Origin

from backend.http.bodies import MAX_BODY_BYTES
from backend.platform import files
from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support import servers
from tests.support.pages import page_client, session_headers
from tests.support.rows import make_run
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EXAMPLES = Path(__file__).parents[2] / "examples" / "deploy"
HOST = "callboard.example"

pytestmark = [pytest.mark.service, pytest.mark.long]


@dataclass(frozen=True)
class Proxied:
    """A service behind a proxy."""

    service: RunningService
    url: str
    """Address of the pages, with the base path and without a last slash."""
    certificate: Path
    """What clients have to trust."""

    @property
    def trust(self) -> ssl.SSLContext:
        """The trust in the proxy's certificate only."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def session_headers(self) -> dict[str, str]:
        """The headers of a session that was opened through the proxy: one belongs to an address and port."""
        with page_client(self.url, verify=self.trust) as browser:
            browser.get("/login", params={"token": self.service.login_link()})
            return session_headers(browser)

    def client(self, **headers: str) -> httpx.Client:
        """A client that trusts the proxy."""
        return httpx.Client(base_url=self.url, headers=headers, verify=self.trust, timeout=PATIENCE_S)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "localhost.pem", folder / "localhost.key"
    paths[0].write_bytes(signed.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return paths


def replaced(text: str, **by: str) -> str:
    """The text of an example with its places filled in, each of which it must have."""
    for old, new in by.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def nginx(folder: Path, port: int, service_port: int) -> Iterator[Path]:
    """Run nginx with the example, as a file that its main configuration includes."""
    program = servers.required("nginx")
    signed, key = certificate(folder)
    site = replaced(
        (EXAMPLES / "nginx.conf").read_text(),
        **{
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            HOST: "localhost",
            "127.0.0.1:8642": f"127.0.0.1:{service_port}",
            "/etc/ssl/certs/localhost.pem": str(signed),
            "/etc/ssl/private/localhost.key": str(key),
        },
    )
    (folder / "site.conf").write_text(site)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    user = f"user {'root' if os.geteuid() == 0 else 'nobody'};\n"
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nerror_log stderr;\npid {folder}/pid;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}include {folder}/site.conf;\n}}\n"
    )
    command = [program, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run(
        [*command, "-t"], env=servers.environment(), capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    with servers.running(command, folder / "nginx.log"):
        yield signed


@contextmanager
def caddy(folder: Path, port: int, service_port: int) -> Iterator[Path]:
    """Run Caddy with the example and a certificate of its own authority."""
    program = servers.required("caddy")
    text = replaced(
        (EXAMPLES / "Caddyfile").read_text(),
        **{f"\n{HOST} {{": f"\nlocalhost:{port} {{", "127.0.0.1:8642": f"127.0.0.1:{service_port}"},
    )
    options = "{\n\tadmin off\n\tskip_install_trust\n\tlocal_certs\n\tauto_https disable_redirects\n}\n"
    (folder / "Caddyfile").write_text(options + text)
    given = ["--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    home = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    checked = subprocess.run(
        [program, "validate", *given], env=os.environ | home, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    with servers.running([program, "run", *given], folder / "caddy.log", home):
        root = folder / "data" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        until(root.exists, detail=(folder / "caddy.log").read_text)
        yield root


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxied(
    request: pytest.FixtureRequest, sqlite_service: RunningService, redis_url: str, short_tmp: Path
) -> Iterator[Proxied]:
    proxy: Callable[[Path, int, int], AbstractContextManager[Path]] = request.param
    database = sqlite_service.settings.database
    with ExitStack() as stack:
        service = stack.enter_context(
            running_service(
                database,
                redis_url,
                short_tmp / "home",
                base_path="/callboard/",
                allowed_hosts=["localhost", "127.0.0.1"],
                trusted_proxies=["127.0.0.1"],
            )
        )
        port = servers.free_port()
        trusted = stack.enter_context(proxy(short_tmp, port, int(service.url.rpartition(":")[2])))
        behind = Proxied(service, f"https://localhost:{port}/callboard", trusted)
        until(lambda: _answers(behind))
        yield behind


def _answers(proxied: Proxied) -> bool:
    try:
        with proxied.client() as client:
            return client.get("/healthz").is_success
    except httpx.TransportError:
        return False


def test_pages_and_api_are_below_the_path_over_tls(proxied: Proxied) -> None:
    with page_client(proxied.url, verify=proxied.trust) as browser:
        opened = browser.get("/login", params={"token": proxied.service.login_link()})
        assert opened.headers["location"].startswith("/callboard/#page_secret=")
        cookie = opened.headers["set-cookie"].lower()
        assert "path=/callboard/;" in f"{cookie};"
        assert "secure" in cookie
        assert opened.headers["strict-transport-security"]
        assert browser.get("/api/v1/auth/me").json()["name"] == "owner"
        created = browser.post("/api/v1/tokens", json={"name": "t", "role": "viewer"})
        assert created.status_code == 201, created.text
        assert '<meta name="callboard-base" content="/callboard"' in browser.get("/").text
        bare = browser.get(proxied.url)
        assert (bare.status_code // 100, bare.headers["location"].endswith("/callboard/")) == (3, True)


def test_events_arrive_as_they_are_sent(proxied: Proxied) -> None:
    headers = proxied.session_headers()
    with proxied.client(**headers) as reader, reader.stream("GET", "/api/v1/events") as answer:
        lines = answer.iter_lines()
        assert answer.headers["content-type"].startswith("text/event-stream")
        next(line for line in lines if line == "event: resync")
        run = make_run(proxied.service.engine)
        with proxied.service.client_as(Role.OPERATOR) as script:
            script.post(f"/api/v1/runs/{run.id}/stop").raise_for_status()
        line = next(line for line in lines if run.id in line)
        assert json.loads(line.removeprefix("data: "))["state"] == "stopped"


def test_live_view_is_a_websocket(proxied: Proxied) -> None:
    run = make_run(proxied.service.engine, RunState.RUNNING)
    address = f"{proxied.url.replace('https', 'wss')}/api/v1/runs/{run.id}/live"
    headers = proxied.session_headers()
    origin = proxied.url.removesuffix("/callboard")
    with connect(
        address,
        additional_headers=headers,
        origin=Origin(origin),
        ssl=proxied.trust,
        open_timeout=PATIENCE_S,
    ) as socket:
        assert socket.response is not None
        assert socket.response.status_code == 101


def test_large_bodies_reach_the_service_which_refuses_larger_ones_itself(proxied: Proxied) -> None:
    with proxied.service.client_as(Role.OPERATOR) as script:
        token = script.headers["Authorization"]
    with proxied.client(Authorization=token) as client:
        padding = " " * (MAX_BODY_BYTES - 100)
        fits = client.post(
            "/api/v1/runs", content=f"{padding}{{}}", headers={"Content-Type": "application/json"}
        )
        assert (fits.status_code, fits.json()["code"]) == (422, "invalid_fields")
        refused = client.post("/api/v1/runs", content=b" " * (MAX_BODY_BYTES + 1))
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")


def test_script_logs_through_the_proxy(
    proxied: Proxied, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import callboard

    with proxied.service.client_as(Role.OPERATOR) as script:
        token = script.headers["Authorization"].removeprefix("Bearer ")
    for name, value in {
        "CALLBOARD_URL": proxied.url,
        "CALLBOARD_TOKEN": token,
        "CALLBOARD_HOME": str(tmp_path / "home"),
        "SSL_CERT_FILE": str(proxied.certificate),
    }.items():
        monkeypatch.setenv(name, value)
    with callboard.init(environment="CartPole-v1", algorithm="mine", seed=1) as run:
        for step in range(100):
            run.log({"loss": step / 100}, agent_steps=step)
    with proxied.client(Authorization=f"Bearer {token}") as client:
        stored = client.get(f"/api/v1/runs/{run.id}").json()
    assert (stored["state"], stored["agent_steps"]) == ("finished", 99)


def test_page_asks_for_nothing_outside_of_the_path(proxied: Proxied, browser: "Browser") -> None:
    assert (files.pages() / "index.html").is_file(), "the pages are not built"
    assert (files.documentation() / "index.html").is_file(), "the documentation is not built"
    run = make_run(proxied.service.engine, RunState.RUNNING)
    origin = proxied.url.removesuffix("/callboard")
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE_S)
    asked: list[str] = []
    faults: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("response", lambda answer: faults.append(answer.url) if answer.status >= 400 else None)
    try:
        page = context.new_page()
        with page.expect_websocket() as live:
            page.goto(f"{proxied.url}/login?token={proxied.service.login_link()}")
            page.get_by_role("navigation").first.wait_for()
            assert page.url == f"{proxied.url}/"
            page.locator(f"a[href='/callboard/runs/{run.id}']").first.click()
            page.get_by_role("heading", level=1).wait_for()
        assert live.value.url.startswith(f"{proxied.url.replace('https', 'wss')}/api/v1/runs/{run.id}/live")
        page.reload()
        page.get_by_role("heading", level=1).wait_for()
        for name in ("hosts", "scores", "new", "settings/account", "help/", "docs"):
            page.goto(f"{proxied.url}/{name}")
            page.locator("h1, .opblock").first.wait_for()
        assert not faults
        page.goto(f"{proxied.url}/hosts")
        context.clear_cookies()
        page.goto(f"{proxied.url}/scores?environment=x")
        page.wait_for_url(f"{proxied.url}/login**")
    finally:
        context.close()
    outside = {url for url in asked if url.startswith(origin) and not url.startswith(f"{proxied.url}/")}
    assert outside == set()
