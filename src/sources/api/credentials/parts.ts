/** Pieces of an identity. Together they are who Junction is. */
import { JunctionError } from '../../../errors.ts';
import type { Identity } from './access.ts';
import type { FileText } from './fileText.ts';

export interface IdentityPart {
  current(): Promise<Partial<Identity>>;
  /** What is known is no good any more. False: nothing else can be had. */
  renew(): boolean;
}

/** A text from the kubeconfig itself, or from a file beside it. */
export type Text = string | FileText;

export function certificatePart(field: 'ca' | 'certificate' | 'key', text: Text): IdentityPart {
  return part([text], async () => ({ [field]: await read(text) }));
}

/** The file counts; the token beside it steps in while the file cannot be read. */
export function tokenPart(
  file: FileText | undefined,
  token: string | undefined,
  where: string,
): IdentityPart {
  const texts = [file, token].filter((text) => text !== undefined);
  return part(texts, async () => {
    try {
      return { authorization: bearer(await read(file ?? token ?? ''), where) };
    } catch (error) {
      if (file === undefined || token === undefined) throw error;
      return { authorization: bearer(token, where) };
    }
  });
}

export function passwordPart(user: string, password: string): IdentityPart {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return part([], async () => ({ authorization }));
}

/** What a header may hold. A token with a line break inside is a wrong file, and would make a broken request. */
const TOKEN = /^[\x21-\x7e]+$/;

export function bearer(token: string, where: string): string {
  const trimmed = token.trim();
  if (TOKEN.test(trimmed)) return `Bearer ${trimmed}`;
  throw new JunctionError('CREDENTIALS_UNAVAILABLE', `${where} has characters that no token has`, {
    hint: 'Put the bare token there: one line, without quotes.',
  });
}

function part(texts: readonly Text[], current: IdentityPart['current']): IdentityPart {
  const files = texts.filter((text) => typeof text !== 'string');
  return {
    current,
    renew: () => {
      for (const file of files) file.forget();
      return files.length > 0;
    },
  };
}

async function read(text: Text): Promise<string> {
  return typeof text === 'string' ? text : text.read();
}
