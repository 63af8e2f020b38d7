"""One data folder and its server: made whole or not at all, launched, ended, and put right after a kill.

The data folder exists under its name only when it is complete, database included: it is made under another name and renamed.
"""

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.devdb import postmaster
from coatcheck.devdb.place import Place, private
from coatcheck.devdb.programs import Programs, tail
from coatcheck.errors import Failed, Refused
from coatcheck.seams import Ids, Pause

DATABASE = "coatcheck"
OWNER = "postgres"
LOG_BYTES = 4_000_000
START_TRIES = 12  # the last processes of a killed server hold its memory for a moment
START_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What PostgreSQL calls a cluster: the data folder at `place`, run by `programs` of major `version` under `settings`."""

    place: Place
    programs: Programs
    version: str
    settings: Mapping[str, str]
    pause: Pause
    ids: Ids

    def serve(self) -> None:
        """Return when the server accepts connections; make it and launch it as far as needed.

        Raises `Refused` for a data folder of another version, `Failed` when a program fails.
        """
        self.place.ready()
        self._configure()
        if not self.place.data.exists():
            self._make()
        made_by = (self.place.data / "PG_VERSION").read_text().strip()
        if made_by != self.version:
            raise Refused(
                f"expected a data folder of PostgreSQL {self.version}, got one of {made_by} in {self.place.data}",
                next=f"ask for version {made_by}, remove the folder, or choose another COATCHECK_HOME",
            )
        if postmaster.running(self.place.data) is None:
            self._launch()

    def end(self, mode: str) -> None:
        """Stop the server if it runs, in pg_ctl's `mode`; one that does not end in time is stopped without ceremony."""
        data = self.place.data
        if postmaster.running(data) is not None:
            ended = self._control("stop", "--wait", f"--mode={mode}", "--timeout=30")
            if ended is not None and postmaster.running(data) is not None:
                self.programs.done("pg_ctl", "stop", f"--pgdata={data}", "--wait", "--mode=immediate", "--timeout=30")

    def clear(self) -> None:
        """Put right what killed processes left. Nobody may be using the server."""
        self.end("fast")
        if self.place.of_deleted_home():
            shutil.rmtree(self.place.data, ignore_errors=True)
        for unfinished in self.place.root.glob("making-*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def _configure(self) -> None:
        """Write the configuration file; it takes in the one that initdb made, which knows the machine."""
        own = {"unix_socket_directories": str(self.place.sockets), **self.settings}
        lines = [f"include_if_exists = {_quoted(str(self.place.data / 'postgresql.conf'))}"]
        lines += [f"{name} = {_quoted(value)}" for name, value in sorted(own.items())]
        self.place.settings.write_text("\n".join([*lines, ""]))
        self.place.settings.chmod(0o644)

    def _make(self) -> None:
        making = self.place.root / f"making-{self.ids.uuid7().hex}"
        private(making, self.programs.account)
        durable = self.settings.get("fsync", "on") == "on"
        self.programs.done(
            "initdb",
            f"--pgdata={making}",
            f"--username={OWNER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
            *([] if durable else ["--no-sync"]),
        )
        with tempfile.TemporaryFile() as statement:
            statement.write(f'create database "{DATABASE}"\n'.encode())
            statement.seek(0)
            single = (
                "--single",
                "-D",
                str(making),
                "-c",
                f"config_file={self.place.settings}",
                "-c",
                "exit_on_error=on",
            )
            self.programs.done("postgres", *single, "postgres", stdin=statement)
        making.rename(self.place.data)

    def _launch(self) -> None:
        if self.place.log.stat().st_size > LOG_BYTES:
            self.place.log.write_bytes(b"")
        refusal: str | None = ""
        for _ in range(START_TRIES):
            postmaster.forget(self.place.data, self.place.sockets)
            refusal = self._control(
                "start",
                "--wait",
                "--timeout=60",
                f"--log={self.place.log}",
                f"--options=-c {shlex.quote(f'config_file={self.place.settings}')}",
            )
            if refusal is None:
                return
            self.pause(START_PAUSE_S)
            self.end("immediate")  # one that a killed process was just about to start, without our settings
        said = tail(self.place.log.read_text(errors="replace"))
        raise Failed(f"expected PostgreSQL to start, got: {refusal} {said}", next=f"read {self.place.log}")

    def _control(self, verb: str, *arguments: str) -> str | None:
        """Run pg_ctl; None when it succeeded, else what it said."""
        ended = self.programs.run("pg_ctl", verb, f"--pgdata={self.place.data}", *arguments)
        return None if ended.code == 0 else tail(ended.said)


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
