/* A program of which the compiler shows what it can do. */
int main(void) { return 0; }
