/** What the program in the guest prints: one JSON object per line, as it happens. */
export interface TestId {
  readonly suite: string;
  readonly name: string;
}

export interface TestResult extends TestId {
  readonly ok: boolean;
  /** Empty where it is ok. */
  readonly message: string;
  readonly milliseconds: number;
}

export type Report = { readonly begun: TestId } | { readonly result: TestResult };

export function testKey({ suite, name }: TestId): string {
  return `${suite} > ${name}`;
}

export function parseReport(line: string): Report | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isReport(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isReport(value: unknown): value is Report {
  return typeof value === 'object' && value !== null && ('begun' in value || 'result' in value);
}
