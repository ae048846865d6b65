/**
 * The guest's first process: a shell script that mounts what a machine needs, loads modules, runs one program and turns
 * the machine off. The host's files are the guest's root, read-only, so nothing that happens here stays behind.
 */
export interface InitSettings {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly modules: readonly string[];
  /** The host's folder that gets the files `booted`, `stdout`, `stderr` and `code`, and has `input`. */
  readonly outputFolder: string;
  /** Has one folder for each version of the kernel. */
  readonly modulesFolder: string;
}

export function initScript(settings: InitSettings): string {
  const { argv, environment, cwd, modules, outputFolder, modulesFolder } = settings;
  const load = modules.map(quote).join(' ');
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  return `#!/bin/sh
export PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/run/home TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/bin /run/home /run/tmp /run/output /run/modules/lib/modules
# What is written there must be the host's at once: this machine may be ended at any moment.
mount -t hostfs none /run/output -o sync,${quote(outputFolder)}
# The host has no modules of this kernel where modprobe looks, and should not get any.
ln -s ${quote(modulesFolder)}/"$(uname -r)" /run/modules/lib/modules/
printf '#!/bin/sh\\nexec /sbin/modprobe --dirname /run/modules "$@"\\n' > /run/bin/modprobe
chmod +x /run/bin/modprobe
echo /run/bin/modprobe > /proc/sys/kernel/modprobe
ip link set lo up
${variables.join('')}cd ${quote(cwd)}
echo yes > /run/output/booted
{ ${load === '' ? 'true' : `modprobe --all ${load}`} && ${argv.map(quote).join(' ')}; } \\
  > /run/output/stdout 2> /run/output/stderr < /dev/null
echo $? > /run/output/code
cd /
umount /run/output
echo o > /proc/sysrq-trigger
# The machine is turned off beside this process, whose end would be a panic.
sleep 10
`;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
