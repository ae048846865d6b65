/** Asks whether a service proxy runs here, and in which mode: kube-proxy and Junction both say so. */
import { request } from 'node:http';

const TIMEOUT_MS = 2000;
const LONGEST_ANSWER = 64;

/** `undefined` where nobody answers, or nobody who is a service proxy. */
export function runningMode(metricsBindAddress: string): Promise<string | undefined> {
  if (metricsBindAddress === '') return Promise.resolve(undefined);
  const address = metricsBindAddress.replace(/^(0\.0\.0\.0|\[::\]|)(?=:\d+$)/, '127.0.0.1');
  return new Promise((resolve) => {
    const asked = request(`http://${address}/proxyMode`, { timeout: TIMEOUT_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > LONGEST_ANSWER) asked.destroy();
      });
      response.on('end', () => resolve(response.statusCode === 200 ? text.trim() : undefined));
      response.on('close', () => resolve(undefined));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
