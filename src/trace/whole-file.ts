/** Files that are there as a whole, or as they were before: several processes may write the same one. */
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';

/** Characters that are written at once. */
const CHUNK = 1 << 20;

/** Writes a file under a name of its own, and gives it its name when it is complete. Errors: those of the system. */
export function writeWhole(file: string, parts: Iterable<string>): void {
  // What is no file (a pipe, a terminal) has no other name to be written under.
  const direct = statSync(file, { throwIfNoEntry: false })?.isFile() === false;
  const own = direct ? file : `${file}.${randomUUID()}.part`;
  // A new file, so that no link is followed.
  const fd = openSync(own, direct ? 'w' : 'wx');
  try {
    try {
      // Unlike `writeSync`, this writes everything, or fails: a disk that is nearly full takes a part.
      let text = '';
      for (const part of parts) {
        text += part;
        if (text.length < CHUNK) continue;
        writeFileSync(fd, text);
        text = '';
      }
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
    if (!direct) renameSync(own, file);
  } catch (error) {
    if (!direct) unlinkSync(own);
    throw error;
  }
}
