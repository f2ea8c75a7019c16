"""A FastAPI service with one memory for each user.

uvicorn examples.service:app
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import kept

STATUS = {kept.NotFound: 404, kept.NotAllowed: 403, kept.InvalidInput: 422, kept.Busy: 503}


class Statement(BaseModel):
    """A statement of a user."""

    text: str
    tags: list[str] = []


def make_app(**about: Any) -> FastAPI:
    """Make the service. `about` are arguments of `kept.Pool`, such as `home`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with kept.Pool(max_open=100, **about) as pool:
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=lifespan)

    @app.exception_handler(kept.KeptError)
    async def explain(request: Request, error: kept.KeptError) -> JSONResponse:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
        return JSONResponse({"detail": error.message, "hint": error.hint}, status)

    @app.post("/users/{user}/memories")
    async def remember(request: Request, user: str, said: Statement) -> dict[str, str | None]:
        async with pool_of(request).auser(user) as memory:
            receipt = await memory.aremember(said.text, tags=said.tags, data={"channel": "web"})
        if receipt.outcome == "refused":
            raise HTTPException(422, receipt.message)
        return {"outcome": receipt.outcome, "ref": receipt.ref}

    @app.get("/users/{user}/memories")
    async def recall(request: Request, user: str, query: str) -> list[str]:
        async with pool_of(request).auser(user) as memory:
            recalled = await memory.arecall(query, data={"channel": "web"})
        return [hit.content for hit in recalled]

    @app.delete("/users/{user}/memories/{ref}")
    async def forget(request: Request, user: str, ref: str) -> None:
        async with pool_of(request).auser(user) as memory:
            await memory.aforget(ref)

    return app


def pool_of(request: Request) -> kept.Pool:
    """Return the pool that the service opened when it started."""
    pool: kept.Pool = request.app.state.pool
    return pool


app = make_app()
