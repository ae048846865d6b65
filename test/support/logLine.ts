/** A log line in JSON without what differs from run to run, and from one edit of the source to the next. */
export function lineWithoutPlace(line: string): string {
  return line.replace(/^\{"ts":\d+,"caller":"[^"]*",/, '{').replace(/,"v":\d+/, '');
}
