/**
 * The system calls that container runtimes allow by default, which Kubernetes calls `RuntimeDefault`. Debian has the profile of
 * podman and CRI-O in golang-github-containers-common; Docker's and containerd's have the same form and nearly the same
 * content.
 */
import { readFileSync } from 'node:fs';

export const PROFILE = '/usr/share/containers/seccomp.json';

interface Condition {
  readonly caps?: readonly string[];
  readonly arches?: readonly string[];
}

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly object[] | null;
  readonly includes?: Condition;
  readonly excludes?: Condition;
}

interface Profile {
  readonly defaultAction: string;
  readonly defaultErrnoRet?: number;
  readonly archMap: readonly {
    readonly architecture: string;
    readonly subArchitectures: readonly string[];
  }[];
  readonly syscalls: readonly Rule[];
}

/** Of the runtime's specification, for a container with these capabilities (`CAP_…`). */
export function defaultSeccomp(capabilities: readonly string[], arch: string = process.arch): object {
  const profile = JSON.parse(readFileSync(PROFILE, 'utf8')) as Profile;
  const names =
    arch === 'x64'
      ? { own: 'amd64', seccomp: 'SCMP_ARCH_X86_64' }
      : { own: 'arm64', seccomp: 'SCMP_ARCH_AARCH64' };
  const matches = ({ caps, arches }: Condition): boolean =>
    (caps === undefined || caps.every((each) => capabilities.includes(each))) &&
    (arches === undefined || arches.includes(names.own));
  const applies = ({ includes = {}, excludes = {} }: Rule): boolean =>
    matches(includes) && !(Object.keys(excludes).length > 0 && matches(excludes));
  const own = profile.archMap.find(({ architecture }) => architecture === names.seccomp);
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet !== undefined && { defaultErrnoRet: profile.defaultErrnoRet }),
    architectures: [names.seccomp, ...(own?.subArchitectures ?? [])],
    syscalls: profile.syscalls.filter(applies).map(({ names: calls, action, errnoRet, args }) => ({
      names: calls,
      action,
      ...(errnoRet !== undefined && action === 'SCMP_ACT_ERRNO' && { errnoRet }),
      ...(args && args.length > 0 && { args }),
    })),
  };
}
