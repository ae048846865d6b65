/** Finds out before the handshake what a handshake would only hint at. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { JunctionError } from '../../../errors.ts';
import type { Identity } from './access.ts';

export function checkIdentity({ ca, certificate, key }: Identity, origin: string, wallTime: number): void {
  if (ca !== undefined) parseCertificate(ca, `${origin}: the certificate authority`);
  if (certificate === undefined && key === undefined) return;
  if (certificate === undefined || key === undefined) {
    const [given, missing] = key === undefined ? ['certificate', 'key'] : ['key', 'certificate'];
    throw unusable(`${origin}: there is a client ${given}, but no client ${missing}`);
  }
  const parsed = parseCertificate(certificate, `${origin}: the client certificate`);
  if (!parsed.checkPrivateKey(parseKey(key, origin))) {
    throw unusable(`${origin}: the client key does not belong to the client certificate`);
  }
  if (Date.parse(parsed.validTo) < wallTime) {
    const message = `${origin}: the client certificate expired on ${parsed.validTo}`;
    throw unusable(message, 'Renew the certificate, or check the clock of this machine.');
  }
}

function parseCertificate(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw unusable(`${what} is not a certificate in PEM`, undefined, error);
  }
}

function parseKey(pem: string, origin: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw unusable(
      `${origin}: the client key is not a private key in PEM without a password`,
      undefined,
      error,
    );
  }
}

function unusable(message: string, hint?: string, cause?: unknown): JunctionError {
  return new JunctionError('CREDENTIALS_UNAVAILABLE', message, { hint, cause });
}
