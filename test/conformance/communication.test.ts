import { testChapter } from './chapter.ts';

testChapter('communication');
