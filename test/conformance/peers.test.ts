/** Nothing that other suites test is missing here, and no requirement names a program that there is not. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { chapters } from '../ranks/conformance/chapters.ts';
import { NOT_APPLICABLE, PROGRAMS } from './peers.ts';

const requirements = Object.values(chapters).flat();
const named = new Set(requirements.flatMap(({ like, run }) => (run === undefined ? [] : like)));

const folder = fileURLToPath(new URL('../../build/conformance/', import.meta.url));

/** For the page. */
afterAll(() => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}peers.json`, `${JSON.stringify(NOT_APPLICABLE, undefined, 1)}\n`);
});

describe('programs of other suites', () => {
  test('each has a tested requirement that stands for it, or a reason why it does not apply', () => {
    expect(PROGRAMS.filter((name) => !named.has(name) && NOT_APPLICABLE[name] === undefined)).toEqual([]);
  });
  test('a reason is given for those only that no requirement stands for', () => {
    expect(Object.keys(NOT_APPLICABLE).filter((name) => named.has(name) || !PROGRAMS.includes(name))).toEqual([]);
  });
  test('requirements name programs that there are', () => {
    expect([...named].filter((name) => !PROGRAMS.includes(name))).toEqual([]);
  });
});

describe('requirements', () => {
  test('each says something of its own, in a section of chapter 12 or beyond it', () => {
    const sentences = requirements.map(({ says }) => says);
    expect(new Set(sentences).size).toBe(sentences.length);
    for (const { section } of requirements) expect(section).toMatch(/^(12\.[2-7](\.[1-7])?|beyond)$/);
  });
  test('each has a test, or says why it has none', () => {
    expect(requirements.filter(({ run, why }) => (run === undefined) === (why === undefined))).toEqual([]);
  });
});
