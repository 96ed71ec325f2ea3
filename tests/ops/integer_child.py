"""Reads pickled (model, arrays) jobs, runs each in the kernels named, in forks, writes the pickled outcomes."""

import os
import pickle
import signal
import sys

from ai_edge_litert.interpreter import Interpreter, OpResolverType

RESOLVERS = {"reference": OpResolverType.BUILTIN_REF, "xnnpack": OpResolverType.BUILTIN,
             "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
BATCH = 50      # models run in one fork while none of them dies


def run(data, arrays, kernels):
    try:
        interpreter = Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=RESOLVERS[kernels])
    except ValueError as error:
        if "Didn't find op" not in str(error):
            return f"refused: {error}"
        return run(data, arrays, "optimized")      # no reference kernel (ELU)
    try:
        interpreter.allocate_tensors()
        for details, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(details["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
    except (ValueError, RuntimeError) as error:
        return f"refused: {error}"


def run_apart(jobs, kernels):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as stream:
            pickle.dump([run(*job, kernels) for job in jobs], stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        return pickle.loads(answer)
    if len(jobs) == 1:
        return [f"died: {signal.Signals(os.WTERMSIG(status)).name}"]
    return [outcome for job in jobs for outcome in run_apart([job], kernels)]


if __name__ == "__main__":
    all_jobs = pickle.load(sys.stdin.buffer)
    found = [outcome for start in range(0, len(all_jobs), BATCH)
             for outcome in run_apart(all_jobs[start:start + BATCH], sys.argv[1])]
    sys.stdout.buffer.write(pickle.dumps(found))
