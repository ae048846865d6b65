/** A vitest reporter that counts: how many tests passed, failed and were skipped, and why. Written to $JUNCTION_COUNTS. */
import { writeFileSync } from 'node:fs';

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: [] };
    for (const module of modules) countModule(module, counts);
    writeFileSync(process.env.JUNCTION_COUNTS, JSON.stringify(counts));
  }
}

function countModule(module, counts) {
  // A file that cannot be loaded, or a describe whose hook failed, has no failed test to show for it.
  const suites = [module, ...module.children.allSuites()];
  counts.failed += suites.filter((suite) => suite.errors().length > 0).length;
  for (const test of module.children.allTests()) {
    const { state, note } = test.result();
    if (state === 'passed') counts.passed++;
    else if (state === 'failed') counts.failed++;
    else counts.skipped.push({ name: `${module.relativeModuleId}: ${test.fullName}`, reason: note });
  }
}
