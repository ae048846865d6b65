/** Work by netlink that is done once, beside the proxy, and must not stop it when it fails. */
import { NetlinkThread } from '../netlink/thread.ts';

export async function withNetlink(
  work: (thread: NetlinkThread) => Promise<void>,
  onFailure: (error: unknown) => void,
): Promise<void> {
  let thread: NetlinkThread | undefined;
  try {
    thread = await NetlinkThread.start();
    await work(thread);
  } catch (error) {
    onFailure(error);
  } finally {
    await thread?.close();
  }
}
