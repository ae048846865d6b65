import { describe, expect, test } from 'vitest';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { RestClientMetrics } from '../../../src/telemetry/metrics/restClientMetrics.ts';
import { certificate } from '../../support/apiServer/index.ts';
import { parseExposition } from './parse.ts';

const HOST = '10.0.0.1:6443';
const LIST = { method: 'GET', host: HOST, code: '200', isRetry: false, limitedMs: 0, sentBytes: 0 };

function stage() {
  const registry = new Registry();
  let now = Date.UTC(2030, 0, 1);
  const metrics = new RestClientMetrics(registry, () => now);
  /** `name{labels} value`, without buckets. */
  const samples = async (name: string): Promise<readonly string[]> =>
    parseExposition(await registry.print())
      .flatMap((family) => family.samples)
      .filter((sample) => sample.name.startsWith(`rest_client_${name}`) && !sample.name.endsWith('_bucket'))
      .map(({ name: full, labels, value }) => {
        const pairs = labels.map(([label, text]) => `${label}=${text}`).join();
        return `${full.slice('rest_client_'.length)}{${pairs}} ${value}`;
      });
  return { metrics, samples, pass: (ms: number) => (now += ms) };
}

describe('requests to the API server', () => {
  test('before the first there is what client-go shows then', async () => {
    expect(await stage().samples('')).toEqual([
      'exec_plugin_certificate_rotation_age_sum{} 0',
      'exec_plugin_certificate_rotation_age_count{} 0',
      'exec_plugin_ttl_seconds{} Infinity',
      'transport_cache_entries{} 0',
    ]);
  });

  test('a list, an event, and what went wrong', async () => {
    const { metrics, samples } = stage();
    metrics.requested({ ...LIST, limitedMs: 300 });
    metrics.answered({ method: 'GET', host: HOST, durationMs: 750, receivedBytes: 5000 });
    metrics.requested({ ...LIST, method: 'POST', code: '201', sentBytes: 201 });
    metrics.answered({ method: 'POST', host: HOST, durationMs: 10 });
    metrics.requested({ ...LIST, code: '<error>', isRetry: true });
    const by = (verb: string): string => `{host=${HOST},verb=${verb}}`;
    expect(await samples('request_duration')).toEqual([
      `request_duration_seconds_sum${by('GET')} 0.75`,
      `request_duration_seconds_count${by('GET')} 1`,
      `request_duration_seconds_sum${by('POST')} 0.01`,
      `request_duration_seconds_count${by('POST')} 1`,
    ]);
    expect(await samples('request_size_bytes_sum')).toEqual([
      `request_size_bytes_sum${by('GET')} 0`,
      `request_size_bytes_sum${by('POST')} 201`,
    ]);
    expect(await samples('response_size_bytes_count')).toEqual([`response_size_bytes_count${by('GET')} 1`]);
    expect(await samples('rate_limiter_duration_seconds_sum')).toContain(
      `rate_limiter_duration_seconds_sum${by('GET')} 0.3`,
    );
    expect(await samples('request_retries')).toEqual([
      `request_retries_total{code=<error>,host=${HOST},verb=GET} 1`,
    ]);
  });
});

describe('credential plugins', () => {
  test('calls are counted by their end', async () => {
    const { metrics, samples } = stage();
    metrics.pluginCalled({ kind: 'ran', code: 0 });
    metrics.pluginCalled({ kind: 'ran', code: 3 });
    metrics.pluginCalled({ kind: 'failed', isMissing: true });
    metrics.pluginCalled({ kind: 'failed', isMissing: false });
    expect(await samples('exec_plugin_call_total')).toEqual([
      'exec_plugin_call_total{call_status=client_internal_error,code=1} 1',
      'exec_plugin_call_total{call_status=no_error,code=0} 1',
      'exec_plugin_call_total{call_status=plugin_execution_error,code=3} 1',
      'exec_plugin_call_total{call_status=plugin_not_found_error,code=1} 1',
    ]);
  });

  test('how long a certificate lasts, and how old it was when it was replaced', async () => {
    const { metrics, samples, pass } = stage();
    metrics.pluginCertificate(certificate('client'));
    const [ttl = ''] = await samples('exec_plugin_ttl');
    expect(Number.isFinite(Number(ttl.split(' ')[1]))).toBe(true);
    pass(1000);
    const [later = ''] = await samples('exec_plugin_ttl');
    expect(Number(ttl.split(' ')[1]) - Number(later.split(' ')[1])).toBe(1);
    metrics.pluginCertificate(certificate('client'));
    expect(await samples('exec_plugin_certificate_rotation_age_count')).toEqual([
      'exec_plugin_certificate_rotation_age_count{} 0',
    ]);
    metrics.pluginCertificate('not a certificate');
    metrics.pluginCertificate(undefined);
    expect(await samples('exec_plugin_certificate_rotation_age_count')).toEqual([
      'exec_plugin_certificate_rotation_age_count{} 1',
    ]);
    expect(await samples('exec_plugin_ttl')).toEqual(['exec_plugin_ttl_seconds{} Infinity']);
  });
});
