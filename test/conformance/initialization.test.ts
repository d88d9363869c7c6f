import { testChapter } from './chapter.ts';

testChapter('initialization');
