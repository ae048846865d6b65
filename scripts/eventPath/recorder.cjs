// Loaded into Junction with --require, and by itself into Junction's threads. Prints the functions that ran, by source file: in the main thread at every
// second SIGUSR2 those since the one before, in other threads while the file EVENT_PATH_RECORDING exists.
const { existsSync, readFileSync, writeSync } = require('node:fs');
const { Session } = require('node:inspector');
const { syncBuiltinESMExports } = require('node:module');
const { fileURLToPath } = require('node:url');
const threads = require('node:worker_threads');

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

function take() {
  /** By file, the functions that ran. */
  const ran = {};
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error) throw error;
    for (const { url, functions } of taken.result)
      if (/\/dist\/(?:junction\/)?[\w-]+\.js$/.test(url))
        for (const { file, name } of ranIn(url, functions)) (ran[file] ??= []).push(name);
  });
  return ran;
}

function print(ran) {
  writeSync(2, `\nRAN ${JSON.stringify(ran)}\n`);
}

/** The bundle has a line `// src/model/ip.ts` before what comes from that file. */
function ranIn(url, functions) {
  const marks = [...readFileSync(fileURLToPath(url), 'utf8').matchAll(/^\/\/ (src\/.*\.ts)$/gm)];
  const fileAt = (offset) => marks.findLast(({ index }) => index < offset)?.[1];
  return functions
    .filter(
      ({ functionName, ranges }) => ranges[0].count > 0 && (functionName !== '' || ranges[0].startOffset > 0),
    )
    .map(({ functionName, ranges }) => ({ file: fileAt(ranges[0].startOffset), name: functionName }))
    .filter(({ file }) => file !== undefined);
}

if (threads.isMainThread) {
  let isRecording = false;
  process.on('SIGUSR2', () => {
    const ran = take();
    if (isRecording) print(ran);
    isRecording = !isRecording;
  });
  const { Worker } = threads;
  threads.Worker = class extends Worker {
    constructor(program, options) {
      super(program, { ...options, execArgv: ['--require', __filename] });
    }
  };
} else {
  // The netlink thread has no event loop: it asks for work, does it, and asks again. What ran in between is printed then.
  const { receiveMessageOnPort } = threads;
  threads.receiveMessageOnPort = (port) => {
    const ran = take();
    if (existsSync(process.env.EVENT_PATH_RECORDING)) print(ran);
    return receiveMessageOnPort(port);
  };
}
syncBuiltinESMExports();
