"""A process that plays a studio's server, or the process of a release, and is killed at a given moment.

It imports everything once and forks for each trial, which takes milliseconds where a new interpreter takes a second.
Moments are counted in audit events of Python: opened files, connections to databases, renamed folders and so on.
Each line of standard input is a trial in JSON; the answer is a line with the exit status and the number of moments.
"""

import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from matrixdp.studio.rendering import Studio
from matrixdp.studio.worker import Runner, release_request
from studio_site import CURATOR, read_settings

# What a release imports when it needs it; imported here, so that not every fork does.
_LATE = ("pandas", "pyarrow.csv", "pyarrow.parquet", "matrixdp.report.release_folder", "matrixdp.studio.forecasts")
for _name in _LATE:
    import_module(_name)


class Moments:
    """Counts audit events, and kills the process at one of them."""

    def __init__(self):
        self.count, self.fatal = 0, None
        sys.addaudithook(self.note)

    def note(self, event, arguments):
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


MOMENTS = Moments()


class ForkingRunner(Runner):
    """Starts the process of a release by a fork; like the true one, it is in a session of its own."""

    def _run_process(self, request_id):
        child = os.fork()
        if child == 0:
            MOMENTS.fatal = None
            os.setsid()
            run_to_the_end(release_request, self._settings, request_id)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def serve(settings, request_id):
    """What a server does with one request: resume what was left, approve it, and have it released."""
    studio = Studio(settings)
    runner = ForkingRunner(settings, studio.state)
    runner._resume()
    studio.requests.approve(CURATOR, request_id)
    runner._release(request_id)


def run_to_the_end(function, *arguments):
    """Call a function and end the process, without the cleaning up of the parent's things."""
    try:
        function(*arguments)
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


def run_trial(trial):
    settings = read_settings(Path(trial["folder"]))
    counts, answer = os.pipe()
    child = os.fork()
    if child == 0:
        MOMENTS.count, MOMENTS.fatal = 0, trial["moment"]

        def play():
            {"server": serve, "worker": release_request}[trial["part"]](settings, trial["request"])
            os.write(answer, str(MOMENTS.count).encode())

        run_to_the_end(play)
    os.close(answer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(counts) as file:
        return {"status": status, "moments": int(file.read() or 0)}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run_trial(json.loads(line))), flush=True)
