import { printMessage, type Problem } from '../../src/text/cursor.ts';

export function printProblem(problem: Problem): string {
  return `${printMessage(problem)} (expected ${problem.expected})`;
}
