/** A question that was not answered. */
export class ApiFailure extends Error {
  /** 0: no answer came. */
  readonly status: number;
  readonly hint: string | undefined;
  /** Which parameter of the question is the reason. */
  readonly parameter: string | undefined;

  constructor(status: number, message: string, hint?: string, parameter?: string) {
    super(message);
    this.status = status;
    this.hint = hint;
    this.parameter = parameter;
  }
}

export function failureOf(error: unknown): ApiFailure {
  return error instanceof ApiFailure ? error : new ApiFailure(0, String(error));
}
