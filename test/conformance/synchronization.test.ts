import { testChapter } from './chapter.ts';

testChapter('synchronization');
