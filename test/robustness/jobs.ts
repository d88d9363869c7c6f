/** What the tests of this folder share: lines of JSON that ranks print, and waiting for one. */
import type { Running } from '../launcher/command.ts';

/** All the lines of JSON that ranks printed, in the order of coming. */
export function linesOf<T = Record<string, unknown>>(stdout: string): ({ readonly rank: number } & T)[] {
  return [...stdout.matchAll(/^\[ *(\d+)\] (\{.*\})$/gm)].map(([, rank, json]) => ({
    rank: Number(rank),
    ...(JSON.parse(json) as T),
  }));
}

/** Resolves to the match when the job's standard output contains it; rejects if the job ends without. */
export function said(job: Running, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = '';
    const listen = (chunk: string): void => {
      text += chunk;
      const found = pattern.exec(text);
      if (found === null) return;
      job.child.stdout!.off('data', listen);
      resolve(found);
    };
    job.child.stdout!.on('data', listen);
    void job.finished.then(({ code, stderr }) =>
      reject(new Error(`ended (${code}) without saying ${pattern}: ${text}${stderr}`)),
    );
  });
}
