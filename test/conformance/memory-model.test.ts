import { testChapter } from './chapter.ts';

testChapter('memory-model');
