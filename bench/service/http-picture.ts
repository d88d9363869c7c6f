/**
 * `npm run figures:services`: draws the picture of docs/guide/services.md from docs/figures/services-http.json, which
 * `npm run bench -- --filter service/http --json docs/figures/services-http.json` measures.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Chart } from '../figures/figure.ts';
import { svgOf } from '../figures/plot.ts';
import { ROOT } from '../programs.ts';
import { HTTP_STORES, type HttpResult, type HttpStore } from './http-rows.ts';

/** What the bench writes. */
export interface HttpFile {
  readonly machine: string;
  readonly http: readonly HttpResult[];
}

const NAMES: Readonly<Record<HttpStore, string>> = {
  onesided: 'onesided',
  lmdb: 'LMDB',
  'lmdb-durable': 'LMDB, durable',
  redis: 'Redis',
  Map: 'a Map in each worker',
};

function chartOf(http: readonly HttpResult[], y: Chart['y'], what: 'perSecond' | 'p99'): Chart {
  const places = [...new Set(http.map(({ workers }) => workers))];
  const series = [false, true].flatMap((busy) =>
    HTTP_STORES.map((store) => ({
      name: `${busy ? 'one core busy' : 'quiet'}, ${NAMES[store]}`,
      values: places.map(
        (n) => http.find((one) => one.busy === busy && one.workers === n)?.found[store]?.[what] ?? null,
      ),
    })),
  );
  // Bars begin at nothing, which a logarithmic axis has not.
  const kind = y.logarithmic === true ? 'lines' : 'bars';
  return { kind, x: { name: 'workers', places: places.map(String), all: true }, y, series };
}

export function drawHttp({ machine, http }: HttpFile): string {
  const beside = chartOf(http, { name: '99 of 100 within (ms)', logarithmic: true }, 'p99');
  const words = {
    id: 'services',
    claim: 'An HTTP server that keeps its sessions in what its workers share',
    caption:
      'Each request reads a session and a cached fragment of 200 bytes each, and writes the session. ' +
      `autocannon asks on the same machine by 32 connections. ${machine}.`,
  };
  return svgOf(words, { ...chartOf(http, { name: 'requests a second' }, 'perSecond'), beside });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const file = JSON.parse(readFileSync(join(ROOT, 'docs/figures/services-http.json'), 'utf8')) as HttpFile;
  writeFileSync(join(ROOT, 'docs/figures/services-http.svg'), drawHttp(file));
}
