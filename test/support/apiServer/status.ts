/** Status objects, as the API server words them. */
export interface StatusOptions {
  readonly reason?: string;
  readonly message?: string;
  /** The header, as it is sent. */
  readonly retryAfter?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export class StatusError extends Error {
  readonly code: number;
  readonly options: StatusOptions;
  constructor(code: number, options: StatusOptions = {}) {
    super(options.message ?? '');
    this.code = code;
    this.options = options;
  }
}

export function statusObject(code: number, options: StatusOptions = {}): Readonly<Record<string, unknown>> {
  const { reason, message, details } = options;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: message ?? '',
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, { reason: 'BadRequest', message });
}

export function invalid(field: string, message: string): StatusError {
  return new StatusError(422, {
    reason: 'Invalid',
    message: `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${message}`,
    details: {
      group: 'meta.k8s.io',
      kind: 'ListOptions',
      causes: [{ reason: 'FieldValueForbidden', message: `Forbidden: ${message}`, field }],
    },
  });
}

export function notFound(): StatusError {
  const message = 'the server could not find the requested resource';
  return new StatusError(404, { reason: 'NotFound', message, details: {} });
}

export function noWatchProgress(): StatusError {
  const message =
    'a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled';
  return new StatusError(500, { reason: 'InternalError', message });
}

export function expired(message: string): StatusError {
  return new StatusError(410, { reason: 'Expired', message });
}

export function tooLarge(wanted: number, current: number): StatusError {
  return new StatusError(504, {
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    retryAfter: '1',
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });
}
