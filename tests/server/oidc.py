"""A provider of OpenID Connect and a proxy that signs readers in at it, each in a process of its own.

The provider is Authlib's authorization server with the code flow. The proxy is a client of it, with state and
nonce; it keeps sessions, takes away what a browser says of itself and vouches for its readers by headers.

    python -m server.oidc provider PORT PROXY_PORT
    python -m server.oidc proxy PORT PROVIDER_PORT SERVER
"""

from __future__ import annotations

import secrets
import sys
import time
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

PEOPLE = {"anna": ["licensed", "paris"], "ben": ["paris"]}
"""Who can sign in, and the groups that the provider states."""

CLIENT, SECRET = "lustrum-proxy", "a secret of the tests"
NAMED = ("x-forwarded-user", "x-forwarded-groups")


# --- The provider


@dataclass
class Client(ClientMixin):
    redirect: str

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return self.redirect

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(client_secret, SECRET)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class Code(AuthorizationCodeMixin):
    user: str
    redirect: str
    scope: str
    nonce: str

    def get_redirect_uri(self) -> str:
        return self.redirect

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str:
        return self.nonce

    def get_auth_time(self) -> int:
        return int(time.time())

    def get_acr(self) -> None: ...

    def get_amr(self) -> None: ...


class Asked(OAuth2Request):  # type: ignore[misc]
    """A request whose parameters were read before."""

    @property
    def args(self) -> Any:
        return self.payload.data

    @property
    def form(self) -> Any:
        return self.payload.data


def provider(port: int, proxy: int) -> Starlette:
    key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
    issuer = f"http://127.0.0.1:{port}"
    client = Client(f"http://127.0.0.1:{proxy}/callback")
    codes: dict[str, Code] = {}

    class Server(AuthorizationServer):  # type: ignore[misc]
        def query_client(self, client_id: str) -> Client | None:
            return client if client_id == CLIENT else None

        def save_token(self, token: Any, request: Any) -> None: ...

        def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None: ...

        def create_oauth2_request(self, request: tuple[Request, dict[str, str]]) -> OAuth2Request:
            seen, words = request
            made = Asked(seen.method, str(seen.url), headers=seen.headers)
            made.payload = BasicOAuth2Payload(words)
            return made

        def handle_response(self, status: int, body: Any, headers: Any) -> Response:
            if isinstance(body, dict):
                return JSONResponse(body, status, dict(headers))
            return Response(body, status, dict(headers))

    class Grant(AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

        def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
            words = request.payload.data
            codes[code] = Code(
                request.user, words["redirect_uri"], words["scope"], words.get("nonce", "")
            )

        def query_authorization_code(self, code: str, client: Client) -> Code | None:
            return codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            for name in [n for n, one in codes.items() if one is authorization_code]:
                del codes[name]

        def authenticate_user(self, authorization_code: Code) -> str:
            return authorization_code.user

    class Identity(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, nonce: str, request: OAuth2Request) -> bool:
            return any(one.nonce == nonce for one in codes.values())

        def get_client_algorithm(self, client: Client) -> str:
            return "RS256"

        def get_client_claims(self, client: Client) -> dict[str, Any]:
            return {"iss": issuer}

        def get_encode_header(self, client: Client) -> dict[str, str]:
            return {"alg": "RS256", "kid": "1"}

        def resolve_client_private_key(self, client: Client) -> RSAKey:
            return key

        def generate_user_info(self, user: str, scope: str) -> UserInfo:
            return UserInfo(sub=user, groups=PEOPLE[user])

    server = Server()
    server.register_token_generator(
        "default",
        lambda **words: {
            "token_type": "Bearer",
            "access_token": secrets.token_urlsafe(),
            "expires_in": 300,
            "scope": words["scope"],
        },
    )
    server.register_grant(Grant, [Identity(require_nonce=True)])

    async def authorize(request: Request) -> Response:
        # Whoever says a name has signed in: how people prove who they are is not what is tested.
        words = dict(request.query_params)
        user = request.cookies.get("provider-session", "")
        given = (request, words)
        grant = server.get_consent_grant(given, end_user=user if user in PEOPLE else None)
        return server.create_authorization_response(  # type: ignore[no-any-return]
            given, grant_user=user if user in PEOPLE else None, grant=grant
        )

    async def token(request: Request) -> Response:
        words = {k: str(v) for k, v in httpx.QueryParams((await request.body()).decode()).items()}
        return server.create_token_response((request, words))  # type: ignore[no-any-return]

    async def keys(request: Request) -> Response:
        return JSONResponse(KeySet([key]).as_dict(private=False))

    routes = [
        Route("/authorize", authorize),
        Route("/token", token, methods=["POST"]),
        Route("/keys", keys),
    ]
    return Starlette(routes=routes)


# --- The proxy


def proxy(port: int, provider_port: int, backend: str) -> Starlette:
    at, here = f"http://127.0.0.1:{provider_port}", f"http://127.0.0.1:{port}"
    waiting: dict[str, str] = {}
    sessions: dict[str, dict[str, Any]] = {}

    def client() -> OAuth2Client:
        return OAuth2Client(CLIENT, SECRET, scope="openid", redirect_uri=f"{here}/callback")

    async def login(request: Request) -> Response:
        nonce = secrets.token_urlsafe()
        url, state = client().create_authorization_url(f"{at}/authorize", nonce=nonce)
        waiting[state] = nonce
        return RedirectResponse(url, 303)

    async def callback(request: Request) -> Response:
        nonce = waiting.pop(request.query_params.get("state", ""), None)
        if nonce is None or "code" not in request.query_params:
            return Response("not signed in", 400)

        def claims() -> dict[str, Any]:
            with client() as one:
                found = one.fetch_token(f"{at}/token", authorization_response=str(request.url))
            keys = KeySet.import_key_set(httpx.get(f"{at}/keys").json())
            token = jwt.decode(found["id_token"], keys, algorithms=["RS256"])
            jwt.JWTClaimsRegistry(
                iss={"essential": True, "value": at},
                aud={"essential": True, "value": CLIENT},
                nonce={"essential": True, "value": nonce},
                exp={"essential": True},
            ).validate(token.claims)
            return dict(token.claims)

        name = secrets.token_urlsafe()
        sessions[name] = await run_in_threadpool(claims)
        answer = RedirectResponse("/", 303)
        answer.set_cookie("proxy-session", name, httponly=True, samesite="lax")
        return answer

    async def forward(request: Request) -> Response:
        drop = (*NAMED, "host", "cookie", "x-forwarded-for", "content-length")
        headers = {k: v for k, v in request.headers.items() if k not in drop}
        reader = sessions.get(request.cookies.get("proxy-session", ""))
        if reader is not None:
            headers |= dict(zip(NAMED, (reader["sub"], ",".join(reader["groups"])), strict=True))
        async with httpx.AsyncClient() as one:
            got = await one.request(
                request.method,
                f"{backend}{request.url.path}?{request.url.query}",
                headers=headers,
                content=await request.body(),
            )
        kept = {
            k: v for k, v in got.headers.items() if k not in ("content-encoding", "content-length")
        }
        return Response(got.content, got.status_code, kept)

    every = ["GET", "POST", "DELETE"]
    routes = [Route("/login", login), Route("/callback", callback)]
    return Starlette(routes=[*routes, Route("/{path:path}", forward, methods=every)])


if __name__ == "__main__":
    kind, mine, other, *rest = sys.argv[1:]
    app = (
        provider(int(mine), int(other))
        if kind == "provider"
        else proxy(int(mine), int(other), *rest)
    )
    uvicorn.run(app, port=int(mine), log_level="warning")
