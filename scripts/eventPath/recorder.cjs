// Loaded into Junction and its threads with --require. At SIGUSR2 it notes which functions have run since the last one, and at
// every second one it prints the source files that these are of.
const { readFileSync } = require('node:fs');
const { Session } = require('node:inspector');
const { fileURLToPath } = require('node:url');
const { BroadcastChannel, isMainThread } = require('node:worker_threads');

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
let isRecording = false;

function take() {
  const files = new Set();
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error) throw error;
    for (const { url, functions } of taken.result)
      if (/\/dist\/[\w-]+\.js$/.test(url)) for (const file of filesOf(url, functions)) files.add(file);
  });
  if (isRecording) process.stderr.write(`\nRAN ${JSON.stringify([...files])}\n`);
  isRecording = !isRecording;
}

/** The bundle has a line `// src/model/ip.ts` before what comes from that file. */
function filesOf(url, functions) {
  const marks = [...readFileSync(fileURLToPath(url), 'utf8').matchAll(/^\/\/ (src\/.*\.ts)$/gm)];
  const fileAt = (offset) => marks.findLast(({ index }) => index < offset)?.[1];
  return functions
    .filter(
      ({ functionName, ranges }) => ranges[0].count > 0 && (functionName !== '' || ranges[0].startOffset > 0),
    )
    .map(({ ranges }) => fileAt(ranges[0].startOffset))
    .filter((file) => file !== undefined);
}

const channel = new BroadcastChannel('junction-event-path');
channel.onmessage = take;
channel.unref();
if (isMainThread)
  process.on('SIGUSR2', () => {
    channel.postMessage('take');
    take();
  });
