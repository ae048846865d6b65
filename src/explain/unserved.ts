/** Why a Service that exists is not served. */
import type { ObjectKey } from '../model/objects.ts';
import type { UnservedService } from './subject.ts';

/** By what the reader of objects says (`src/model/project/service.ts`). */
const CODES: Readonly<Record<string, UnservedService['code']>> = {
  'it is headless': 'headless',
  'it is an ExternalName': 'external-name',
  'it is for another proxy': 'other-proxy',
  'it has no cluster IP': 'no-cluster-ip',
};

/** `reason`: why it is left alone, or what is wrong with it. */
export function unservedFor(reason: string, where?: string): UnservedService {
  return { code: CODES[reason] ?? 'invalid', reason, ...(where !== undefined && { where }) };
}

/** What a reader of files says of objects. */
interface FileNotes {
  readonly ignored: readonly { readonly object: string; readonly where: string; readonly reason: string }[];
  readonly problems: readonly {
    readonly object?: string;
    readonly severity: 'error' | 'warning';
    readonly where: string;
    readonly message: string;
  }[];
}

/** One that is left alone, or that has an error. */
export function unservedInFiles(
  { ignored, problems }: FileNotes,
  service: ObjectKey,
): UnservedService | undefined {
  const id = `Service ${service}`;
  const left = ignored.find(({ object }) => object === id);
  if (left) return unservedFor(left.reason, left.where);
  const error = problems.find(({ object, severity }) => object === id && severity === 'error');
  return error && unservedFor(error.message, error.where);
}
