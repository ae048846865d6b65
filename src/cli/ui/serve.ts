/** The page at an address that is free now; what is not is an error, and nothing is tried again. */
import { JunctionError } from '../../errors.ts';
import { systemClock } from '../../time/systemClock.ts';
import { UiServer, type UiServerOptions } from '../../ui/uiServer.ts';

export async function servePage(options: Omit<UiServerOptions, 'clock' | 'onHardFail'>): Promise<UiServer> {
  let failure: Error | undefined;
  const onHardFail = (error: Error): void => {
    failure = error;
  };
  const server = new UiServer({ ...options, clock: systemClock, onHardFail });
  await server.start();
  if (failure) throw new JunctionError('PAGE_NOT_SERVED', failure.message, { cause: failure });
  return server;
}
