"""Decisions as a service, for docs/practice.md: `uvicorn --app-dir examples service:app`.

A decision is in the log from the moment it is made, and with every reward the agent's state is on disk: what is killed
goes on where it was. Rewards find their decision by its number, however late they come.
"""

import csv
import io
import json
import os
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse

import driftformer as df

FOLDER, AGENT = Path(os.environ.get("FOLDER", "service")), os.environ.get("AGENT", "policy:drift")
STATE, ARMS = FOLDER / "state.safetensors", int(os.environ.get("ARMS", 0)) or None  # how many share a context, if so
COLUMNS = ("round", "context" if ARMS else "features", "arm", "propensity", "reward")  # what `driftformer replay` reads


@asynccontextmanager
async def lifespan(app):
    FOLDER.mkdir(exist_ok=True)
    agent = df.make_agent(AGENT)
    app.agent = agent.online(state=STATE) if STATE.exists() else agent.online(arms=ARMS, scale=True, explore=0.05)
    app.log = sqlite3.connect(FOLDER / "log.db", isolation_level=None, check_same_thread=False)
    app.log.execute(f"create table if not exists log (round integer primary key, {', '.join(COLUMNS[1:])})")
    yield
    app.agent.save(STATE)


app = FastAPI(lifespan=lifespan, exception_handlers={df.InputError: lambda _, error: JSONResponse(str(error), 422)})


@app.post("/decide")
async def decide(features: list[list[float | None]] | list[float | None] = Body(embed=True)):
    made = app.agent.decide(features)
    row = (made.round, json.dumps(features), made.arm, made.probability)
    app.log.execute("insert or replace into log values (?, ?, ?, ?, null)", row)
    return {"id": made.round, "arm": made.arm, "probability": made.probability}


@app.post("/reward")
async def reward(id: int = Body(), reward: float = Body()):
    learned = app.agent.update(reward, round=id)
    app.log.execute("update log set reward = ? where round = ?", (reward, id))
    app.agent.save(STATE)
    return {"learned": learned}


@app.get("/log", response_class=PlainTextResponse)
async def log():
    rows = [COLUMNS, *app.log.execute("select * from log where reward is not null order by round")]
    csv.writer(file := io.StringIO()).writerows(rows)
    return file.getvalue()
