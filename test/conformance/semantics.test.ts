import { testChapter } from './chapter.ts';

testChapter('semantics');
