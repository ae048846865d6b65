/** The program that changed something in the kernel, as the kernel names it. */
export interface ChangedBy {
  readonly processId: number | undefined;
  readonly processName: string | undefined;
}
