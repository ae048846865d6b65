/**
 * Lets User-mode Linux boot on processors with AMX (Intel Xeon since 2023). It restores the registers of its processes with
 * PTRACE_SETREGSET and the 2,696 bytes that they took before AMX. The host's kernel takes the whole state, 11,008 bytes here, or
 * refuses with EFAULT: the guest panics in `put_fp_registers` before its first process runs. A library that is loaded before
 * libc completes the state; the guest's processes never use AMX, so its part stays zero.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled, toolEnvironment } from '../tools.ts';

const COMPILER = 'tcc';

const LIBRARY = `
struct iovec { void *base; unsigned long length; };
enum { SYS_PTRACE = 101, PEEK_FIRST = 1, PEEK_LAST = 3, GETREGSET = 0x4204, SETREGSET = 0x4205, XSTATE = 0x202 };
extern long syscall(long number, ...);
extern int *__errno_location(void);

/* The guest runs one thread on small stacks, and is not preempted between two system calls of its kernel. */
static char state[65536];

long ptrace(long request, long pid, long address, void *data)
{
  struct iovec *part = data, whole = { state, sizeof state };
  if (request >= PEEK_FIRST && request <= PEEK_LAST) {
    long word, failed = syscall(SYS_PTRACE, request, pid, address, &word);
    if (!failed) *__errno_location() = 0;
    return failed ? failed : word;
  }
  if (request == SETREGSET && address == XSTATE && syscall(SYS_PTRACE, (long)GETREGSET, pid, address, &whole) == 0) {
    for (unsigned long i = 0; i < part->length && i < whole.length; i++) state[i] = ((char *)part->base)[i];
    return syscall(SYS_PTRACE, request, pid, address, &whole);
  }
  return syscall(SYS_PTRACE, request, pid, address, data);
}
`;

/** What User-mode Linux needs in its environment to boot on this processor. */
export function processorEnvironment(folder: string): NodeJS.ProcessEnv {
  if (!hasAmx()) return {};
  const library = join(folder, 'processor-state.so');
  execFileSync(COMPILER, ['-shared', '-nostdlib', '-o', library, '-'], {
    input: LIBRARY,
    env: toolEnvironment(),
  });
  return { LD_PRELOAD: library };
}

/** `undefined`: it boots on this processor. */
export function whyNotOnThisProcessor(): string | undefined {
  if (!hasAmx() || isInstalled(COMPILER)) return undefined;
  return `User-mode Linux needs ${COMPILER} on a processor with AMX (Debian package ${COMPILER})`;
}

function hasAmx(): boolean {
  return /^flags\s*:.*\bamx_tile\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'));
}
