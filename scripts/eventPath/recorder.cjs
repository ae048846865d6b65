// Loaded into Junction with --require. Prints the functions that ran, by source file: at every second SIGUSR2 those since the one before.
const { readFileSync, writeSync } = require('node:fs');
const { Session } = require('node:inspector');
const { fileURLToPath } = require('node:url');

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

let isRecording = false;
process.on('SIGUSR2', () => {
  const ran = take();
  if (isRecording) print(ran);
  isRecording = !isRecording;
});
