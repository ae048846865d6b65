import { type Problem, printPath } from '../problem.ts';
import { labelOf } from './cursor.ts';

/** The message with the field's whole path: `spec.ports[0].port 70000 is out of range`. */
export function printMessage({ path, message }: Problem): string {
  const label = labelOf(path);
  return path.length > 0 && message.startsWith(label)
    ? `${printPath(path)}${message.slice(label.length)}`
    : message;
}

export function printProblem(problem: Problem): string {
  return `${printMessage(problem)} (expected ${problem.expected})`;
}
