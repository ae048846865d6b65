/** The npm that runs this script, where one does; otherwise the one of PATH. */
export function npm(...args) {
  const running = process.env.npm_execpath;
  const command = running?.endsWith('.js') ? [process.execPath, running] : ['npm'];
  return [...command, ...args];
}
