package collector
import ("testing";"time";"context";"fmt";"syscall")
func ct() (u,s time.Duration) { var r syscall.Rusage; syscall.Getrusage(0,&r); return time.Duration(r.Utime.Nano()),time.Duration(r.Stime.Nano()) }
func TestRate(t *testing.T){
 for _, iv := range []time.Duration{time.Second, 100*time.Millisecond} {
 r:=NewReader(ReaderOptions{}); s:=NewSampler(r,Options{Interval:iv}); ctx,c:=context.WithTimeout(context.Background(),8*time.Second)
 u0,s0:=ct(); s.Run(ctx); c(); u1,s1:=ct(); fmt.Println(iv, "user",(u1-u0)/8,"sys",(s1-s0)/8,"cpu per s")
 r.Close()}
}
