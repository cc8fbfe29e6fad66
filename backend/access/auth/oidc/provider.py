"""The OpenID Connect provider: its discovery document, and codes exchanged for verified identities.

All of it is asynchronous and bounded: a provider that does not answer occupies no thread.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import httpx
from authlib.common.security import is_secure_transport
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet, KeySetSerialization
from joserfc.jws import JWSRegistry
from pydantic import BaseModel, ValidationError

from backend.access.auth.oidc.attempt import SignInAttempt
from backend.access.auth.oidc.identity import Identity, ProviderUnavailable, Refused
from backend.platform.errors import TooMany
from backend.platform.settings import Settings
from backend.platform.text import is_storable

REQUEST_TIMEOUT_S = 5.0
"""Timeout of a connection, and of each part of a response."""
TIMEOUT_S = 10.0
"""Timeout of all requests of one step."""
DISCOVERY_TIMEOUT_S = 8.0
"""Timeout of discovery document and keys: less, so that waiting requests learn of a failure in time."""
MAX_RESPONSE_BYTES = 2**20
CACHE_S = 3600.0
"""How long the discovery document and the signing keys are used."""
RETRY_S = 5.0
"""Minimum time between requests for discovery document and keys, after a failure or for an unknown key."""
MAX_PENDING = 20
"""Sign-ins that may wait for the provider at the same time."""
CLOCK_SKEW_S = 60
MAX_SUBJECT_CHARACTERS = 255

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"})
"""Signatures that are accepted: only the provider can create them."""


class _Metadata(BaseModel):
    """What is used of a discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]
    id_token_signing_alg_values_supported: list[str] = ["RS256"]


class _Tokens(BaseModel):
    id_token: str
    access_token: str


@dataclass(frozen=True)
class _Known:
    metadata: _Metadata
    keys: KeySet
    at: float


class Provider:
    """The provider of an installation. Nothing is requested before a user signs in."""

    def __init__(self, settings: Settings) -> None:
        assert settings.oidc_issuer is not None
        assert settings.oidc_client_id is not None
        self.issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        self._settings = settings
        self._lock = asyncio.Lock()
        self._known: _Known | None = None
        self._failure: tuple[float, str] | None = None
        self._http: httpx.AsyncClient | None = None
        self._n_pending = 0

    async def authorization_url(self, attempt: SignInAttempt, redirect_uri: str) -> str:
        """Where to send the browser.

        Raises:
            ProviderUnavailable: the discovery document cannot be read.
            TooMany: too many sign-ins wait for the provider.
        """
        async with self._step():
            known = await self._discover()
        url: str = prepare_grant_uri(
            known.metadata.authorization_endpoint,
            self._client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=self._settings.oidc_scopes,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.code_verifier),
            code_challenge_method="S256",
        )
        return url

    async def identify(self, attempt: SignInAttempt, code: str, redirect_uri: str) -> Identity:
        """Exchange a code for an identity, and verify it.

        Raises:
            ProviderUnavailable: the provider does not answer, or not in its own protocol.
            Refused: code or ID token is invalid.
            TooMany: too many sign-ins wait for the provider.
        """
        async with self._step():
            known = await self._discover()
            tokens = await self._redeem(known.metadata, attempt, code, redirect_uri)
            claims = await self._verify(known, tokens, attempt)
            subject = claims["sub"]
            if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS:
                raise Refused("failed", "the ID token has no subject of 1 to 255 characters")
            if not is_storable(subject):
                raise Refused("failed", "the subject of the ID token is not storable text")
            wanted = {"preferred_username"}
            if self._settings.oidc_roles:
                wanted.add(self._settings.oidc_role_claim.split(".")[0])
            if known.metadata.userinfo_endpoint and not wanted <= claims.keys():
                claims |= await self._userinfo(known.metadata.userinfo_endpoint, tokens, subject)
        return Identity(self.issuer, subject, claims)

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    @asynccontextmanager
    async def _step(self) -> AsyncIterator[None]:
        if self._n_pending >= MAX_PENDING:
            raise TooMany("too many sign-ins at the same time: try again in a few seconds", RETRY_S)
        self._n_pending += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                yield
        except TimeoutError:
            raise ProviderUnavailable(f"{self.issuer} did not answer within {TIMEOUT_S:g} s") from None
        finally:
            self._n_pending -= 1

    async def _discover(self, *, new_keys: bool = False) -> _Known:
        async with self._lock:
            known, failure, now = self._known, self._failure, monotonic()
            # Unknown keys are looked for at intervals only: any client can name one.
            if known is not None and now - known.at < (RETRY_S if new_keys else CACHE_S):
                return known
            if failure is not None and now - failure[0] < RETRY_S:
                raise ProviderUnavailable(failure[1])
            try:
                async with asyncio.timeout(DISCOVERY_TIMEOUT_S):
                    self._known = await self._fetch()
            except TimeoutError:
                text = f"{self.issuer} did not answer within {DISCOVERY_TIMEOUT_S:g} s"
                self._failure = (monotonic(), text)
                raise ProviderUnavailable(text) from None
            except ProviderUnavailable as error:
                self._failure = (monotonic(), str(error))
                raise
            self._failure = None
            return self._known

    async def _fetch(self) -> _Known:
        url = f"{self.issuer}/.well-known/openid-configuration"
        try:
            metadata = _Metadata.model_validate(await self._get(url))
        except ValidationError as error:
            fields = ", ".join(sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}))
            raise ProviderUnavailable(f"{url} is not a discovery document: check {fields or 'it'}") from None
        if metadata.issuer.rstrip("/") != self.issuer:
            raise ProviderUnavailable(
                f"{url} names the issuer {metadata.issuer!r:.200}: correct CALLBOARD_OIDC_ISSUER"
            )
        used = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri]
        for endpoint in [*used, *filter(None, [metadata.userinfo_endpoint])]:
            if not is_secure_transport(endpoint):
                raise ProviderUnavailable(f"{url} names {endpoint!r:.200}, which is not https")
        if not ALGORITHMS.intersection(metadata.id_token_signing_alg_values_supported):
            raise ProviderUnavailable(f"{url} names no signature that is accepted: {sorted(ALGORITHMS)}")
        try:
            keys = KeySet.import_key_set(_as_key_set(await self._get(metadata.jwks_uri)))
        except (JoseError, KeyError, TypeError, ValueError) as error:
            raise ProviderUnavailable(f"{metadata.jwks_uri} has no usable keys: {error!r:.200}") from None
        return _Known(metadata, keys, monotonic())

    async def _redeem(
        self, metadata: _Metadata, attempt: SignInAttempt, code: str, redirect_uri: str
    ) -> _Tokens:
        secret = self._secret()
        methods = metadata.token_endpoint_auth_methods_supported
        basic = "client_secret_basic" in methods or "client_secret_post" not in methods
        method = ("client_secret_basic" if basic else "client_secret_post") if secret else "none"
        body = prepare_token_request(
            "authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=attempt.code_verifier
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        client = ClientAuth(self._client_id, secret, method)
        url, headers, body = client.prepare("POST", metadata.token_endpoint, headers, body)
        answer = await self._request("POST", url, headers, body)
        try:
            return _Tokens.model_validate(answer)
        except ValidationError:
            error = answer.get("error", "no ID token")
            raise Refused("failed", f"the provider did not accept the code: {error!r:.100}") from None

    def _secret(self) -> str | None:
        file, secret = self._settings.oidc_client_secret_file, self._settings.oidc_client_secret
        if file is None:
            return secret.get_secret_value() if secret else None
        try:
            return file.read_text().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ProviderUnavailable(f"CALLBOARD_OIDC_CLIENT_SECRET_FILE {file}: {reason}") from None

    async def _verify(self, known: _Known, tokens: _Tokens, attempt: SignInAttempt) -> dict[str, Any]:
        try:
            try:
                decoded = _decode(tokens.id_token, known)
            except (BadSignatureError, InvalidKeyIdError):
                known = await self._discover(new_keys=True)  # the provider may have changed its keys
                decoded = _decode(tokens.id_token, known)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": known.metadata.issuer},
                    "aud": {"essential": True, "value": self._client_id},
                },
                {"nonce": attempt.nonce, "client_id": self._client_id, "access_token": tokens.access_token},
            )
            claims.validate(leeway=CLOCK_SKEW_S)
        except (JoseError, KeyError, TypeError, ValueError) as error:
            raise Refused("failed", f"the ID token is not valid: {error!s:.200}") from None
        return dict(claims)

    async def _userinfo(self, url: str, tokens: _Tokens, subject: str) -> dict[str, Any]:
        claims = await self._get(url, {"Authorization": f"Bearer {tokens.access_token}"})
        if claims.get("sub") != subject:
            raise Refused("failed", "the provider's user information is about another subject")
        return claims

    async def _get(self, url: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
        return await self._request("GET", url, headers or {}, None)

    async def _request(
        self, method: str, url: str, headers: dict[str, str], body: str | None
    ) -> dict[str, Any]:
        """Send a request. Returns the JSON object of the response, whatever its status below 500."""
        if self._http is None:
            self._http = httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S)
        headers = {"Accept": "application/json"} | headers
        received = bytearray()
        try:
            async with self._http.stream(method, url, headers=headers, content=body) as response:
                async for part in response.aiter_bytes():
                    received += part
                    if len(received) > MAX_RESPONSE_BYTES:
                        raise ProviderUnavailable(f"{url} answered with more than {MAX_RESPONSE_BYTES} bytes")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise ProviderUnavailable(f"{url} cannot be reached: {reason:.200}") from None
        if response.status_code >= 500:
            raise ProviderUnavailable(f"{url} answered {response.status_code}")
        try:
            answer = json.loads(received)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ProviderUnavailable(f"{url} answered {response.status_code} without a JSON object")
        return answer


def _decode(id_token: str, known: _Known) -> jwt.Token:
    algorithms = ALGORITHMS.intersection(known.metadata.id_token_signing_alg_values_supported)
    registry = JWSRegistry(algorithms=sorted(algorithms), strict_check_header=False)
    return jwt.decode(id_token, known.keys, registry=registry)


def _as_key_set(answer: dict[str, Any]) -> KeySetSerialization:
    return {"keys": [key for key in answer["keys"] if key.get("use", "sig") == "sig"]}
